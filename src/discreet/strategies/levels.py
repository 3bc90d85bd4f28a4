"""How private a strategy is: by ε, by ε and γ, or by ρ, and why others are refused."""

from typing import TYPE_CHECKING

from discreet import scale
from discreet.errors import InvalidInputError
from discreet.trust import TRUSTS
from discreet.validate import check_epsilon, check_gamma, check_rho

if TYPE_CHECKING:
    from discreet.strategies.strategy import Strategy


def check_privacy(strategy: "Strategy") -> None:
    """Refuse levels that the strategy does not have, or that are missing."""
    row, model = strategy.part, TRUSTS[strategy.trust]
    if not model.private:
        if strategy.epsilon is not None:
            private = [f"trust='{word}'" for word in row.trusts if TRUSTS[word].private]
            other = f"say {' or '.join(private)}" if private else "use a private strategy"
            raise InvalidInputError(
                f"{strategy.name} has no privacy here (trust='none'): leave epsilon out, or {other}"
            )
    elif strategy.epsilon is None and strategy.rho is None:
        other = ", or trust='none'" if "none" in row.trusts else ""
        raise InvalidInputError(
            f"{strategy.name} is private: say how private, for instance epsilon=1{other}"
        )
    elif strategy.epsilon is not None:
        check_epsilon(strategy.epsilon)
    _check_gaussian(strategy, row.gaussian and model.noised)


def _check_gaussian(strategy: "Strategy", sums: bool) -> None:
    """γ and ρ, the levels of Gaussian noise; `sums` may have it."""
    gamma, rho = strategy.gamma, strategy.rho
    if (strategy.part.gamma and gamma is None) or (
        gamma is not None and not (sums or strategy.part.gamma)
    ):
        raise InvalidInputError(
            "gamma belongs to gauss-tt, and gauss-tt needs it, for instance gamma=1e-6; bet-se and "
            "adap-tt take it with a trusted collector"
        )
    if rho is not None and not sums:
        raise InvalidInputError(
            "rho, the level of zero-concentrated privacy, is for bet-se and adap-tt with a trusted "
            "collector"
        )
    if gamma is not None:
        check_gamma(gamma)
    if rho is not None:
        if strategy.epsilon is not None or gamma is not None:
            raise InvalidInputError(
                "give either rho, or epsilon (with gamma if you like), not both"
            )
        check_rho(rho)
    if sums and not strategy.pure:
        _check_fit(strategy)


def _check_fit(strategy: "Strategy") -> None:
    """Refuse levels for which there is no Gaussian noise on sums, and what is not
    proved for it.
    """
    from discreet.strategies.scales import sum_noise

    sum_noise(strategy)
    if strategy.cost == "private":
        raise InvalidInputError(
            f"the cost of {strategy.name} is that of pure ε: with gamma or rho use adap-tt, "
            "whose cost does not change with Gaussian noise"
        )
    if strategy.threshold in ("printed", "empirical"):
        raise InvalidInputError(
            "with Gaussian noise (gamma or rho) only the proved threshold is available: leave "
            "threshold out"
        )
    if strategy.outcomes == scale.NUMBERS:
        raise InvalidInputError(
            "Gaussian noise (gamma or rho) is for outcomes that are yes or no: leave outcomes out, "
            "or leave gamma or rho out"
        )
