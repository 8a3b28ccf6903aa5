import { PlatformError } from '../kit/errors/errors.ts';
import { escapeAllControls, escapeToSingleLines } from '../kit/security/escape-controls.ts';
import type { CommandContext } from './context.ts';

/** Error for a prompt that is required but not possible. The exit code is 3. */
class InputNeededError extends PlatformError {
  constructor(message: string, hint: string) {
    super('VALIDATION_ERROR', message, { details: { hint } });
    this.name = 'InputNeededError';
  }
}

/** Error for Ctrl-C at a prompt. The exit code is 130. */
export class CancelledError extends PlatformError {
  constructor() {
    super('CONFLICT', 'Cancelled. Nothing was changed.');
    this.name = 'CancelledError';
  }
}

/** Prompts for confirmation before an irreversible action. Throws InputNeededError without a terminal. */
export async function confirm(context: CommandContext, question: string): Promise<boolean> {
  if (context.globals.yes) return true;
  requireTerminal(context, question, 'Use --yes to confirm.');
  const { confirm: prompt } = await import('@clack/prompts');
  return (
    (await prompt({
      message: escapeToSingleLines(question),
      initialValue: false,
      output: process.stderr,
    })) === true
  );
}

/**
 * Prompts the user to type `word` before a destructive action. With `--yes`, returns true without a prompt. Otherwise
 * throws InputNeededError without a terminal.
 */
export async function confirmByTyping(
  context: CommandContext,
  question: string,
  word: string,
): Promise<boolean> {
  if (context.globals.yes) return true;
  requireTerminal(context, question, 'Use --yes to confirm.');
  const { text, isCancel } = await import('@clack/prompts');
  const message = `${escapeToSingleLines(question)} Type ${word} to continue.`;
  const typed = await text({ message, placeholder: word, output: process.stderr });
  return !isCancel(typed) && typed.trim() === word;
}

export interface Choice<Value extends string> {
  value: Value;
  label: string;
  hint: string;
}

/**
 * Prompts for one of several choices. Throws CancelledError on Ctrl-C. Without a terminal, throws InputNeededError,
 * which names the flag for the choice.
 */
export async function choose<Value extends string>(
  context: CommandContext,
  question: string,
  choices: ReadonlyArray<Choice<Value>>,
  flag: string,
): Promise<Value> {
  requireTerminal(context, question, `Use ${flag}, or --yes for the default (${choices[0]?.value}).`);
  const { select, isCancel } = await import('@clack/prompts');
  const options = choices.map(({ value, label, hint }) => ({
    value: value as string,
    label: escapeAllControls(label),
    hint: escapeAllControls(hint),
  }));
  const chosen = await select({ message: escapeToSingleLines(question), options, output: process.stderr });
  if (isCancel(chosen)) throw new CancelledError();
  return chosen as Value;
}

function requireTerminal({ globals, ui }: CommandContext, question: string, hint: string): void {
  if (globals.input && !globals.json && ui.interactive && process.stdin.isTTY) return;
  throw new InputNeededError(`${question} Input is required, but there is no terminal.`, hint);
}
