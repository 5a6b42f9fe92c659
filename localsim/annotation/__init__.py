"""Human annotation: what raters are shown, what they answer, and how far they agree with each other and with judges."""
