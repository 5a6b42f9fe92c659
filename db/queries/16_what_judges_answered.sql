-- Judgements: each question to a judge, its answer, and why a reply could not be read.
SELECT family, mode, model AS player, evaluator, name, agent, right(prompt, 80) AS question, thought_tokens, reply,
       malformed
FROM v_judgements WHERE run_id = $run ORDER BY evaluator, episode_id, agent, name, sample LIMIT 10;
