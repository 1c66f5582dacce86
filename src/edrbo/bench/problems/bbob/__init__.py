"""The 24 noiseless functions of COCO's bbob suite (Hansen et al. 2009), some of their inputs being contexts."""
