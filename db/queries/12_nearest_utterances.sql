-- Nearest utterances: search by meaning, with the cosine of the embeddings of fact and utterance.
SELECT round(array_inner_product(f.vector, v.vector), 2) AS cosine, l.fact, v.text
FROM (SELECT DISTINCT fact FROM v_leaks WHERE run_id = $run) l JOIN vectors f ON f.text = l.fact
JOIN vectors v ON v.text <> l.fact
JOIN (SELECT DISTINCT text FROM v_turns WHERE run_id = $run) t ON t.text = v.text
ORDER BY cosine DESC, v.text LIMIT 10;
