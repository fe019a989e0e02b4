"""The 16 numbers of NF4 in the order of their codes, as bitsandbytes has them (QLoRA, Dettmers and others, 2023, appendix E)."""
import numpy as np

TABLE = np.array([-1, -0.6961928, -0.525073051, -0.394917488, -0.284441382, -0.18477343, -0.0910500363, 0, 0.0795802996,
                  0.160930201, 0.246112302, 0.337915242, 0.440709829, 0.562617004, 0.722956836, 1], np.float32)
