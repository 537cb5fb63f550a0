"""Where names lead: to classes that the package ships (`registry`), or to the user's own (`own`)."""
