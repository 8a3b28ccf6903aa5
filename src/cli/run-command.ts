import { toPlatformError } from '../kit/errors/errors.ts';
import { jsonText } from '../kit/security/harmless.ts';
import { systemClock } from '../kit/time/clock.ts';
import type { CommandContext } from './context.ts';
import { createContext } from './create-context.ts';
import type { AnyCommand } from './define-command.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import type { GlobalFlags } from './globals.ts';
import type { RecordShape } from './json-records.ts';
import { failureEnvelope, renderDeclaredFailure, renderError, renderHelp, renderResult } from './output.ts';
import { parseArgs, parseGlobals } from './parse-args.ts';
import { createStyle } from './style.ts';
import { createUi } from './ui.ts';
import { lineWidth } from './wrap.ts';

/** Parses, runs and prints a command; resolves with the exit code. */
export async function runCommand(command: AnyCommand, argv: readonly string[]): Promise<number> {
  let globals = parseGlobals(argv);
  try {
    const expanded = await command.expand?.(argv, contextFor(globals));
    const resolved = expanded?.command ?? command;
    const parsed = parseArgs(resolved, expanded?.argv ?? argv);
    if ('help' in parsed) {
      process.stdout.write(`${renderHelp(parsed.help, globals.json)}\n`);
      return EXIT.done;
    }
    globals = parsed.globals;
    const context = contextFor(globals, resolved);
    const outcome = await resolved.run(parsed.args, context);
    const text = renderResult(resolved, outcome, globals.json, context.ui.out);
    if (text !== null) process.stdout.write(`${text}\n`);
    if (outcome.error && !globals.json)
      process.stderr.write(`${renderDeclaredFailure(outcome, context.ui.err, lineWidth(process.stderr))}\n`);
    return outcome.error ? EXIT.failed : outcome.exitCode;
  } catch (error) {
    return reportFailure(error, globals);
  }
}

function contextFor(globals: GlobalFlags, shape: RecordShape = {}): CommandContext {
  return createContext({
    cwd: process.cwd(),
    env: process.env,
    globals,
    ui: uiFor(globals, shape),
    clock: systemClock,
  });
}

/** Reports an unknown command. */
export function reportUsage(error: unknown, argv: readonly string[]): number {
  return reportFailure(error, parseGlobals(argv));
}

function reportFailure(error: unknown, globals: GlobalFlags): number {
  if (globals.json) process.stdout.write(`${jsonText(failureEnvelope(error))}\n`);
  else {
    const style = createStyle(process.stderr, process.env);
    const width = lineWidth(process.stderr);
    process.stderr.write(`${renderError(error, { style, debug: globals.debug, width })}\n`);
  }
  return exitCodeOf(toPlatformError(error));
}

function uiFor(globals: GlobalFlags, shape: RecordShape) {
  const { stdout, stderr, env } = process;
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
