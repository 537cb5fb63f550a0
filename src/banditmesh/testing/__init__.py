"""Checks for your own protocols, policies, emissions and algorithms, to be run in a test.

`check_protocol`, `check_policy`, `check_emission` and `check_algorithm` check everything that the engines, results and
comparisons rely on. At the first failure they raise `ContractError`, with one line that says what was required, what
came and what to do; otherwise they return a `Report`. No test framework is needed.

    values       what all of them must be: frozen values with a name, whose fields count
    scalars      their rules as functions: defined everywhere, pure, and honest about what they use
    choices      what is required of choices, and of what keeps something for them
    cases        the small problems to run on
    runs         small simulations: books that balance, nothing learned twice, equal engines
    protocols, policies, emissions, algorithms    the checks themselves; report, what they return
"""

from .algorithms import check_algorithm
from .emissions import check_emission
from .policies import check_policy
from .protocols import check_protocol
from .report import Report
from .values import shipped

__all__ = ["Report", "check_algorithm", "check_emission", "check_policy", "check_protocol", "shipped"]
