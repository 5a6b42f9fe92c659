-- Judgements: each question to a judge, its answer, and why a reply could not be read.
SELECT evaluator, name, agent, right(prompt, 80) AS question, thought_tokens, reply, malformed
FROM v_judgements ORDER BY evaluator, episode_id, agent, name, sample LIMIT 10;
