import { PlatformError } from '../kit/errors.ts';
import type { CommandContext } from './context.ts';

/** A question that nobody is there to answer: exit code 3. */
export class InputNeededError extends PlatformError {
  constructor(message: string, hint: string) {
    super('VALIDATION_ERROR', message, { details: { hint } });
    this.name = 'InputNeededError';
  }
}

/** Asks before something that cannot be taken back. Throws InputNeededError where nobody can be asked. */
export async function confirm({ globals, ui }: CommandContext, question: string): Promise<boolean> {
  if (globals.yes) return true;
  if (!globals.input || globals.json || !ui.interactive || !process.stdin.isTTY) {
    throw new InputNeededError(`${question} Nobody can be asked here.`, '--yes answers yes.');
  }
  const { confirm: ask } = await import('@clack/prompts');
  return (await ask({ message: question, initialValue: false, output: process.stderr })) === true;
}
