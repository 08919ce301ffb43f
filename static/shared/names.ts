/** Names of pipelines and elements, as the server takes them. Pure. */
export const NAME_MAX = 40;

const PATTERN = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

/** What is wrong with a name; null: nothing. */
export const nameFault = (name: string): string | null =>
  PATTERN.test(name) && name.length <= NAME_MAX
    ? null
    : `Lower-case letters, digits and hyphens, at most ${NAME_MAX}; it starts and ends with a letter or digit.`;
