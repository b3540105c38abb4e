"""A cache of builds: one load for many askers, versions that swap, one copy per host."""
