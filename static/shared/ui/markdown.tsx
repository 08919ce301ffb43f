import { Fragment, type ReactNode } from "react";
import { lexer, type Token, type Tokens } from "marked";

/** Markdown as React elements: raw HTML in it stays text, so an operator's docs cannot run code. */
export function Markdown({ text }: { text: string }) {
  return <div className="markdown">{blocks(lexer(text))}</div>;
}

function blocks(tokens: Token[]): ReactNode {
  return tokens.map((token, index) => <Fragment key={index}>{block(token)}</Fragment>);
}

function block(token: Token): ReactNode {
  switch (token.type) {
    case "heading":
      return <h3>{inline(token.tokens)}</h3>;
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "code":
      return (
        <pre className="code">
          <code>{token.text}</code>
        </pre>
      );
    case "list": {
      const items = (token as Tokens.List).items.map((item, index) => (
        <li key={index}>{blocks(item.tokens)}</li>
      ));
      return (token as Tokens.List).ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <MarkdownTable table={token as Tokens.Table} />;
    case "blockquote":
      return <blockquote>{blocks(token.tokens ?? [])}</blockquote>;
    case "space":
      return null;
    case "text":
      return token.tokens ? inline(token.tokens) : token.text;
    default:
      return token.raw;
  }
}

function MarkdownTable({ table }: { table: Tokens.Table }) {
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index}>{inline(cell.tokens)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const unescape = (text: string) =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

function inline(tokens: Token[] | undefined): ReactNode {
  return (tokens ?? []).map((token, index) => {
    switch (token.type) {
      case "strong":
        return <strong key={index}>{inline(token.tokens)}</strong>;
      case "em":
        return <em key={index}>{inline(token.tokens)}</em>;
      case "codespan":
        return <code key={index}>{unescape(token.text)}</code>;
      case "link":
        return (
          <a
            key={index}
            href={/^https?:/.test(token.href) ? token.href : undefined}
            target="_blank"
            rel="noreferrer"
          >
            {inline(token.tokens)}
          </a>
        );
      case "br":
        return <br key={index} />;
      default:
        return <Fragment key={index}>{"text" in token ? unescape(String(token.text)) : token.raw}</Fragment>;
    }
  });
}
