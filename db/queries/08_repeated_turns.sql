-- Repeated turns: utterances that occur more than once in an episode.
SELECT episode_id, text, count(*) AS times FROM v_turns WHERE words > 0
GROUP BY episode_id, text HAVING count(*) > 1 ORDER BY times DESC, episode_id LIMIT 10;
