import { definitions, shellExample } from '../wrap.ts';
import type { CommandEntry } from './entry.ts';

/** One command in `svc commands` and in the help of its noun. */
export function described(
  { name, summary, example }: Pick<CommandEntry, 'name' | 'summary' | 'example'>,
  width: number,
): string[] {
  return [`  ${name}`, ...definitions([['  ', summary]], width), ...shellExample(example, width, '      ')];
}
