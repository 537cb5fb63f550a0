"""A fixed set of problems on which protocols and algorithms are compared, published and your own.

problems            the problems of `suite-1`
rows                what is compared on each of them
running             runs the suite, or what is left of it
records             the file of results, with its hashes
result              what the results say
checking            runs a sample of a published file again
page                the results as one HTML file
"""

from .checking import check
from .problems import PROBLEMS, SuiteProblem
from .result import SuiteResult
from .running import estimate, run

__all__ = ["PROBLEMS", "SuiteProblem", "SuiteResult", "check", "estimate", "run"]
