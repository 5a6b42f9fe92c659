"""MutualFriends: two lists of friends, usually one friend on both."""

from localsim.families.mutual_friends.family import MutualFriends as MutualFriends
