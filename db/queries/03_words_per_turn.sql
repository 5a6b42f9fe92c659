-- Words per turn: how long are turns?
SELECT family, mode, model AS player, round(avg(words), 1) AS words_per_turn, count(*) AS turns
FROM v_turns WHERE run_id = $run AND words > 0 GROUP BY ALL ORDER BY ALL;
