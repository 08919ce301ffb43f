/** Names of pipelines, elements and sites, as the server takes them. Pure. */
export const NAME_MAX = 40;

const PATTERN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** What is wrong with a name; null when nothing is. */
export const nameFault = (name: string): string | null =>
  PATTERN.test(name) && name.length <= NAME_MAX
    ? null
    : `Use lower-case letters, digits and hyphens, at most ${NAME_MAX}. Start and end with a letter or digit.`;

export const TITLE_MAX = 120;

/** What is wrong with what people call a pipeline; null when nothing is. Any letters are allowed. */
export const titleFault = (title: string, max = TITLE_MAX): string | null =>
  title.trim() === "" ? "Enter a name." : title.trim().length > max ? `Use at most ${max} characters.` : null;

const SITE = /^[A-Za-z0-9][A-Za-z0-9 ._-]*$/;

/** What is wrong with the name of a site; null when nothing is. An empty name is allowed. */
export const siteFault = (name: string): string | null => {
  const site = name.trim().replace(/\s+/g, " ");
  return site === "" || (SITE.test(site) && site.length <= NAME_MAX)
    ? null
    : `Use letters, digits, spaces, dots, hyphens and underscores, at most ${NAME_MAX}. Start with a letter or digit.`;
};
