-- Words per turn: how long are turns, by family and mode?
SELECT family, mode, round(avg(words), 1) AS words_per_turn, count(*) AS turns
FROM v_turns WHERE words > 0 GROUP BY family, mode ORDER BY family, mode;
