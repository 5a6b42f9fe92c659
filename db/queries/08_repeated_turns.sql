-- Repeated turns: utterances that occur more than once in an episode.
SELECT family, mode, model AS player, episode_id, text, count(*) AS times
FROM v_turns WHERE run_id = $run AND words > 0
GROUP BY ALL HAVING count(*) > 1 ORDER BY times DESC, episode_id, text LIMIT 10;
