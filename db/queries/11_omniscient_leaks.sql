-- Untold facts: the words in which an agent used a fact that it had not been told.
SELECT l.family, l.mode, l.model AS player, l.episode_id, l.fact, l.speaker, l.turn, t.text,
       round(l.probability, 2) AS sure
FROM v_leaks l JOIN v_turns t ON t.episode_id = l.episode_id AND t.turn = l.turn
WHERE l.run_id = $run AND l.kind = 'omniscient' ORDER BY l.probability DESC, l.episode_id, l.turn LIMIT 10;
