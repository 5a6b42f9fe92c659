"""Games that are scenes: several people, private turns, and somebody who watches, votes or narrates."""
