/** "Error no-node", with the page that says more. */
export function ErrorCode({ code }: { code: string | null | undefined }) {
  if (!code) return null;
  return (
    <span className="muted small">
      Error{" "}
      <a className="mono" href={`/errors/${encodeURIComponent(code)}`} title="What it means, and what to do">
        {code}
      </a>
    </span>
  );
}
