"""The page of `banditmesh serve`, which shows a network learn.

    server      the ASGI application behind its guard, and the process that answers
    access      who may ask: the sidecar's guard, and a token for addresses beyond loopback
    shell       what all views share: header, navigation, dark mode, messages
    choices     what is chosen on the page, as a spec, as a link and as lines of Python
    uploads     files that users upload
    form        the fields by which it is chosen
    workers     processes that simulate, outside of the event loop, and can be stopped at once
    desk        what such a process does
    polling     what the sidecars of a live mesh say
    charts      options of charts
    playing     the network as it learns, in the lab
    downloads   what can be downloaded of a run
    words       short explanations of the words on the page
    lab, follow, compare, studies, mesh     one view each

Rules kept here: the event loop never simulates, draws or reads a study; what it sends to a browser at a time is
bounded; a browser has its own workers and sees nothing of others; nothing is requested from anywhere but this server.
Nothing is imported here, since NiceGUI is an extra and takes its time.
"""
