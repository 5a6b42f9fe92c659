-- Turns to the friend: in which turn is a friend in common first named? A conversation that names none counts with the
-- turn limit, so that early endings do not look like early mentions.
SELECT family, mode, model AS player, round(avg(value), 1) AS turns_to_friend,
       count(*) FILTER (value < 20) AS named_before_the_last_turn, count(*) AS episodes
FROM v_scores WHERE run_id = $run AND name = 'first_mention_turn' AND newest GROUP BY ALL ORDER BY ALL;
