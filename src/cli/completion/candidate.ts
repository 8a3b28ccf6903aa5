import { GLOBAL_FLAGS } from '../globals.ts';

/** A completion candidate. */
export interface Candidate {
  value: string;
  description?: string;
}

/** Requests file name completion by the shell. */
export const FILES: Candidate = { value: ':files' };

export function globalFlags(): Candidate[] {
  return [
    ...GLOBAL_FLAGS.map(({ name, summary }) => ({ value: `--${name}`, description: summary })),
    { value: '--help', description: 'show help for this command' },
  ];
}
