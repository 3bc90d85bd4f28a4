"""Plan how many participants a trial takes, and the privacy that a number of them affords."""
