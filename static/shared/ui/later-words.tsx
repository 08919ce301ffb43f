import { useEffect, useState } from "react";
import "./later-words.css";

/**
 * A sentence in a question that arrives later: the question does not wait for it, and nothing moves when
 * it arrives.
 */
export function LaterWords({ ask, meanwhile }: { ask: () => Promise<string>; meanwhile: string }) {
  const [words, setWords] = useState(meanwhile);
  useEffect(() => {
    let gone = false;
    void ask().then((answer) => gone || setWords(answer));
    return () => {
      gone = true;
    };
    // asked once, for the question as it was put
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return <span className="later-words">{words}</span>;
}
