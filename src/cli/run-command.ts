import type { Environment } from '../kit/config/config.ts';
import { toPlatformError } from '../kit/errors/errors.ts';
import { jsonText } from '../kit/security/escape-controls.ts';
import { systemClock } from '../kit/time/clock.ts';
import type { CommandContext } from './context.ts';
import { createContext } from './create-context.ts';
import type { AnyCommand } from './define-command.ts';
import { failureEnvelope } from './envelope.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import type { GlobalFlags } from './globals.ts';
import type { RecordShape } from './json-records.ts';
import { renderDeclaredFailure, renderError, renderHelp, renderResult } from './output.ts';
import { parseArgs, parseGlobals } from './parse-args.ts';
import { createStyle } from './style.ts';
import { createUi, type OutputStream } from './ui.ts';
import { lineWidth } from './wrap.ts';

/** The members of `process` that the CLI uses, except stdin. */
export interface Terminal {
  cwd(): string;
  env: Environment;
  stdout: OutputStream;
  stderr: OutputStream;
}

/** Parses the arguments, runs the command and prints its result. Resolves with the exit code. */
export async function runCommand(
  command: AnyCommand,
  argv: readonly string[],
  terminal: Terminal = process,
): Promise<number> {
  const { stdout, stderr } = terminal;
  let globals = parseGlobals(argv);
  try {
    const expanded = await command.expand?.(argv, contextFor(terminal, globals));
    const resolved = expanded?.command ?? command;
    const parsed = parseArgs(resolved, expanded?.argv ?? argv);
    if ('help' in parsed) {
      stdout.write(`${renderHelp(parsed.help, globals.json)}\n`);
      return EXIT.done;
    }
    globals = parsed.globals;
    const context = contextFor(terminal, globals, resolved);
    const outcome = await resolved.run(parsed.args, context);
    const text = renderResult(resolved, outcome, globals.json, context.ui.out);
    if (text !== null) stdout.write(`${text}\n`);
    if (outcome.error && !globals.json)
      stderr.write(`${renderDeclaredFailure(outcome, context.ui.err, lineWidth(stderr))}\n`);
    return outcome.error ? EXIT.failed : outcome.exitCode;
  } catch (error) {
    return reportFailure(terminal, error, globals);
  }
}

function contextFor(terminal: Terminal, globals: GlobalFlags, shape: RecordShape = {}): CommandContext {
  return createContext({
    cwd: terminal.cwd(),
    env: terminal.env,
    globals,
    ui: uiFor(terminal, globals, shape),
    clock: systemClock,
  });
}

/** Prints a usage error, such as an unknown command. Returns the exit code. */
export function reportUsage(error: unknown, argv: readonly string[]): number {
  return reportFailure(process, error, parseGlobals(argv));
}

function reportFailure({ stdout, stderr, env }: Terminal, error: unknown, globals: GlobalFlags): number {
  if (globals.json) stdout.write(`${jsonText(failureEnvelope(error))}\n`);
  else {
    const style = createStyle(stderr, env);
    stderr.write(`${renderError(error, { style, debug: globals.debug, width: lineWidth(stderr) })}\n`);
  }
  return exitCodeOf(toPlatformError(error));
}

function uiFor({ stdout, stderr, env }: Terminal, globals: GlobalFlags, shape: RecordShape) {
  return createUi({
    stdout,
    stderr,
    quiet: globals.quiet,
    json: globals.json,
    out: createStyle(stdout, env),
    err: createStyle(stderr, env),
    shape,
  });
}
