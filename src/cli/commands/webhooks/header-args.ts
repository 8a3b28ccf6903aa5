import { UsageError } from '../../parse-args.ts';

/**
 * Parses a value of `--header`, such as `X-Name: value`. Returns the name in lower case. Throws UsageError for an
 * invalid value.
 */
export function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([\w-]+):\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new UsageError(`--header ${text} is not 'name: value'.`);
  return [name.toLowerCase(), value];
}
