-- What a judge was asked and what it answered (thoughts too, where it thinks), and whether the reply could be read.
SELECT evaluator, name, agent, right(prompt, 80) AS question, thought_tokens, reply, malformed
FROM v_judgements ORDER BY evaluator, episode_id, agent, name, sample LIMIT 10;
