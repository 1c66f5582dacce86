"""Running replicates: one at a time, on processes, on a cluster, and what is kept of them."""
