"""Human annotation: items to judge, answers, and how well raters agree with each other, with judges and detector."""
