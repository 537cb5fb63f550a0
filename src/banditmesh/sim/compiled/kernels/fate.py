"""Places in the counts of fates: what became of copies, and how many were heard.

Of what is heard, all but what is stale is learned.
"""

SENT, DELIVERED, ABSORBED, EXPIRED, STOPPED, RELAYED, QUEUED, LOST, HEARD, STALE = range(10)
N_COUNTS = 10
