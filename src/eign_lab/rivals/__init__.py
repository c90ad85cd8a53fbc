"""What a user would run instead of a registered method: programs with loops of their own, by name.

A program takes a `CountedProblem` and evaluates it until it is stopped. Its name has a slash, or is
"package.module:function" for one that is defined elsewhere, so that it is never taken for a registered method.
"""

from eign_lab.rivals.counted import CountedProblem, Finished, sobol_design
from eign_lab.rivals.programs import PROGRAM_OPTIONS, PROGRAMS, Program

__all__ = ["PROGRAMS", "PROGRAM_OPTIONS", "CountedProblem", "Finished", "Program", "sobol_design"]
