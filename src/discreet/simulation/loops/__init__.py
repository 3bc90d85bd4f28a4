"""One loop a family: draws rewards and noise, and asks the family what follows."""
