"""BBOB, the noiseless test bed of COCO (Hansen et al. 2021), as a judge: its functions, its score, its picture."""
