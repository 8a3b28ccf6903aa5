import { GLOBAL_FLAGS } from '../globals.ts';

export interface Candidate {
  value: string;
  description?: string;
}

/** Candidate that makes the shell complete file names. */
export const FILES: Candidate = { value: ':files' };

export function globalFlags(): Candidate[] {
  return [
    ...GLOBAL_FLAGS.map(({ name, summary }) => ({ value: `--${name}`, description: summary })),
    { value: '--help', description: 'show help for this command' },
  ];
}
