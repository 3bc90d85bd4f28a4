"""An example of each command, which its --help shows at the end. They stand together so
that one can be followed from line to line: the same trial all the way through.
"""

import click

EXAMPLES = {
    "": "discreet plan --arms 4 --gap 0.2 --epsilon 1",
    "bounds": "discreet bounds --means 0.75,0.7,0.7 --epsilon 0.1,1 --delta 0.01",
    "simulate": "discreet simulate --means 0.75,0.6,0.5 --strategy bet-se --epsilon 1 --runs 200",
    "plan": "discreet plan --arms 4 --gap 0.2 --base 0.5 --epsilon 0.1,1 --budget 3000",
    "audit": "discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1",
    "audit correctness": "discreet audit correctness --strategy bet-se --epsilon 1 --delta 0.1",
    "audit privacy": "discreet audit privacy --strategy bet-se --epsilon 1",
    "sweep": "discreet sweep study.toml --out results",
    "reproduce": "discreet reproduce --out study --quick",
    "demo": "discreet demo --out report.html",
    "trial": "discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-people 2000",
    "trial create": (
        "discreet trial create dose --arms '5 mg,10 mg' --epsilon 1 --max-people 2000 --deadline 7d"
    ),
    "trial ask": "discreet trial ask dose --count 20",
    "trial tell": "discreet trial tell dose --csv outcomes.csv",
    "trial amend": "discreet trial amend dose ID 0",
    "trial miss": "discreet trial miss dose ID",
    "trial expire": "discreet trial expire dose",
    "trial open": "discreet trial open dose --site Leeds",
    "trial reissue": "discreet trial reissue dose ID",
    "trial manage": "discreet trial manage dose pause --reason 'The pharmacy is closed.'",
    "trial unblind": "discreet trial unblind dose ID --reason 'Emergency treatment.'",
    "trial codes": "discreet trial codes dose",
    "trial audit-trail": "discreet trial audit-trail dose --most 20",
    "trial list": "discreet trial list",
    "trial status": "discreet trial status dose",
    "trial verify": "discreet trial verify dose",
    "trial transcript": "discreet trial transcript dose --out transcript.json",
    "trial export": "discreet trial export dose --out dose.csv",
    "trial report": "discreet trial report dose --out report.html --pdf report.pdf",
    "trial backup": "discreet trial backup backup.db",
    "trial restore": "discreet trial restore backup.db --head HEAD",
    "trial grants": "discreet trial grants --service web --manager ann --site leeds > grants.sql",
    "serve": "discreet serve --url sqlite:///trials.db --port 8642",
    "token": "discreet token create leeds-clinic --role site --trial dose --site Leeds",
    "token create": "discreet token create leeds-clinic --role site --trial dose --site Leeds",
    "token list": "discreet token list",
    "token revoke": "discreet token revoke 3",
    "respond": "discreet respond --epsilon 1 --outcome -",
    "verify": "discreet verify transcript.json",
    "report": "discreet report transcript.json --out report.html",
}
"""By the command's name without `discreet`."""


def show_examples(command: click.Command, name: str = "") -> None:
    """Let the help of a command and of those below it end with an example."""
    command.epilog = f"\b\nExample:\n  {EXAMPLES[name]}"
    for part, below in command.commands.items() if isinstance(command, click.Group) else ():
        show_examples(below, f"{name} {part}".strip())
