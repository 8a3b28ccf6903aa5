import type { CommandResult } from '../contracts/index.ts';
import { isRecord } from '../kit/data/is-record.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import {
  escapeControls,
  escapeControlsIn,
  escapeToSingleLines,
  jsonText,
} from '../kit/security/escape-controls.ts';
import { type AnyCommand, STREAMED } from './define-command.ts';
import { declaredFailure, successEnvelope } from './envelope.ts';
import { completeRecords } from './json-records.ts';
import { shellWord } from './shell-word.ts';
import type { Style } from './style.ts';
import { pairs, table } from './table.ts';
import { lineWidth, wrap } from './wrap.ts';

/** Renders a result for stdout. Returns null if no output is needed, for example after a stream. */
export function renderResult(
  command: AnyCommand,
  outcome: CommandResult,
  json: boolean,
  style: Style,
): string | null {
  if (outcome.meta?.[STREAMED]) return null;
  const failed = outcome.error !== undefined || outcome.exitCode !== 0;
  if (json) {
    const completed = { ...outcome, result: completeRecords(outcome.result, command) };
    return jsonText(failed ? declaredFailure(completed) : successEnvelope(completed));
  }
  if (outcome.result === undefined) return null;
  // A failed command prints only its error, unless the command defines a `text` formatter.
  if (outcome.error && !command.text) return null;
  const result = escapeControlsIn(outcome.result);
  const text = command.text ? command.text(result, style) : renderValue(result, style);
  // Only single lines are wrapped, because multi-line text has its own layout.
  return escapeControls(text.includes('\n') ? text : wrap(text, lineWidth(process.stdout)).join('\n'));
}

/** Renders help. The help of a plugin's command may contain untrusted text. */
export function renderHelp(help: string, json: boolean): string {
  return json ? jsonText({ ok: true, result: { help } }) : escapeControlsIn(help);
}

/** Renders a failure that a command reported in its result instead of throwing an error. */
export function renderDeclaredFailure(outcome: CommandResult, style: Style, width: number): string {
  const { message, code = 'EXECUTION_ERROR' } = outcome.error ?? {};
  return escapeControls(
    [
      indented(`${style.red('error')} `, escapeControlsIn(String(message)), width),
      style.dim(` code ${escapeToSingleLines(code)}`),
    ].join('\n'),
  );
}

export interface ErrorView {
  style: Style;
  debug: boolean;
  /** Width of the terminal. The width is infinite for pipes, whose lines are not wrapped. */
  width: number;
}

/** Renders an error: its message, its details, and a hint on how to solve the problem. */
export function renderError(thrown: unknown, { style, debug, width }: ErrorView): string {
  const error = thrown instanceof PlatformError ? thrown : unexpected(thrown);
  const message = escapeControlsIn(error.message);
  const { hint, lastLines, at, requestId } = textsIn(error.details);
  if (error.name === 'CancelledError') return message;
  const lines = [
    indented(`${style.red('error')} `, message, width),
    ...(lastLines.length > 0
      ? [style.dim('  last lines:'), ...lastLines.map((line) => style.dim(`  | ${line}`))]
      : []),
    ...(at ? [style.dim(`   at ${at}`)] : []),
    ...(requestId
      ? [
          style.dim(`  req ${requestId}`),
          `${style.cyan(' hint')} svc logs --request-id ${shellWord(requestId)}`,
        ]
      : []),
    ...(hint ? [indented(`${style.cyan(' hint')} `, hint, width)] : []),
    ...(error.name === 'UsageError' ? [] : [style.dim(` code ${error.code}`)]),
    ...(debug ? [indented('', escapeControlsIn(stackOf(thrown)), Number.POSITIVE_INFINITY)] : []),
  ];
  return escapeControls(lines.join('\n'));
}

interface ErrorTexts {
  hint?: string | undefined;
  at?: string | undefined;
  requestId?: string | undefined;
  lastLines: string[];
}

/**
 * Extracts the printable details. Values of unexpected types are ignored, because a remote gateway can send any value.
 */
function textsIn({ hint, lastLines, at, requestId }: Record<string, unknown>): ErrorTexts {
  const isText = (value: unknown): value is string => typeof value === 'string';
  const line = (value: unknown) => (isText(value) ? escapeToSingleLines(value) : undefined);
  return {
    hint: isText(hint) ? escapeControlsIn(hint) : undefined,
    at: line(at),
    requestId: line(requestId),
    lastLines: Array.isArray(lastLines) ? escapeToSingleLines(lastLines.filter(isText)) : [],
  };
}

const MARGIN = 6;

/**
 * Wraps text after a head such as `error`. All lines except list items, which start with two spaces, are indented.
 * Untrusted text therefore cannot imitate the CLI's `hint` and `error` lines.
 */
function indented(head: string, text: string, width: number): string {
  const margin = ' '.repeat(MARGIN);
  const fitting = (line: string, index: number): string => {
    const before = index === 0 || line.startsWith('  ') ? '' : margin;
    return before + (line.length <= width - MARGIN ? line : wrap(line, width - MARGIN).join(`\n${margin}`));
  };
  return head + text.split('\n').map(fitting).join('\n');
}

/**
 * Converts an unexpected error. The message is shown, because the CLI runs on the user's machine. Services hide such
 * messages from callers.
 */
function unexpected(thrown: unknown): PlatformError {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new PlatformError('INTERNAL_ERROR', message, {
    details: { hint: 'This is a bug in svc. Run with --debug for the stack trace.' },
  });
}

function stackOf(thrown: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = thrown; at instanceof Error; at = at.cause) parts.push(at.stack ?? at.message);
  return parts.join('\ncaused by: ');
}

/** Formats a list of records as a table. Formats a single record as name-value pairs. */
function renderValue(value: unknown, style: Style): string {
  if (Array.isArray(value) && value.length > 0 && value.every(isRecord)) {
    const headings = [...new Set(value.flatMap((row) => Object.keys(row)))];
    return table(
      headings,
      value.map((row) => headings.map((heading) => scalar(row[heading]))),
      style,
    );
  }
  if (isRecord(value))
    return pairs(
      Object.entries(value).map(([name, item]) => [name, scalar(item)]),
      style,
    );
  return scalar(value);
}

function scalar(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
