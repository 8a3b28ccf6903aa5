import { definitions, shellExample } from '../wrap.ts';
import type { CommandEntry } from './command-entry.ts';

/** Formats a command for `svc commands` and for the help of a command group such as `webhooks`. */
export function described(
  { name, summary, example }: Pick<CommandEntry, 'name' | 'summary' | 'example'>,
  width: number,
): string[] {
  return [`  ${name}`, ...definitions([['  ', summary]], width), ...shellExample(example, width, '      ')];
}
