import { PlatformError } from '../kit/errors.ts';
import type { CommandContext } from './context.ts';
import { harmlessLines, spelledOut } from './harmless.ts';

/** A question that nobody is there to answer: exit code 3. */
class InputNeededError extends PlatformError {
  constructor(message: string, hint: string) {
    super('VALIDATION_ERROR', message, { details: { hint } });
    this.name = 'InputNeededError';
  }
}

/** Ctrl-C at a question: exit code 130. */
export class CancelledError extends PlatformError {
  constructor() {
    super('CONFLICT', 'Cancelled; nothing was changed.');
    this.name = 'CancelledError';
  }
}

/** Asks before something that cannot be taken back. Throws InputNeededError where nobody can be asked. */
export async function confirm(context: CommandContext, question: string): Promise<boolean> {
  if (context.globals.yes) return true;
  requireSomebody(context, question, '--yes answers yes.');
  const { confirm: ask } = await import('@clack/prompts');
  return (
    (await ask({ message: harmlessLines(question), initialValue: false, output: process.stderr })) === true
  );
}

/** Asks for a word to be typed, before something that destroys. Throws InputNeededError where nobody can be asked. */
export async function confirmByTyping(
  context: CommandContext,
  question: string,
  word: string,
): Promise<boolean> {
  if (context.globals.yes) return true;
  requireSomebody(context, question, '--yes answers yes.');
  const { text, isCancel } = await import('@clack/prompts');
  const message = `${harmlessLines(question)} Type ${word} to go on.`;
  const typed = await text({ message, placeholder: word, output: process.stderr });
  return !isCancel(typed) && typed.trim() === word;
}

export interface Choice<Value extends string> {
  value: Value;
  label: string;
  hint: string;
}

/** One of several. Throws CancelledError, or InputNeededError that names the flag which answers. */
export async function choose<Value extends string>(
  context: CommandContext,
  question: string,
  choices: ReadonlyArray<Choice<Value>>,
  flag: string,
): Promise<Value> {
  requireSomebody(context, question, `${flag} answers it, --yes takes the default (${choices[0]?.value}).`);
  const { select, isCancel } = await import('@clack/prompts');
  const options = choices.map(({ value, label, hint }) => ({
    value: value as string,
    label: spelledOut(label),
    hint: spelledOut(hint),
  }));
  const chosen = await select({ message: harmlessLines(question), options, output: process.stderr });
  if (isCancel(chosen)) throw new CancelledError();
  return chosen as Value;
}

function requireSomebody({ globals, ui }: CommandContext, question: string, hint: string): void {
  if (globals.input && !globals.json && ui.interactive && process.stdin.isTTY) return;
  throw new InputNeededError(`${question} Nobody can be asked here.`, hint);
}
