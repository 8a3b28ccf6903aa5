import { createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import type { JsonValue } from '../../../../kit/data/json-value.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import { Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import type { Program } from '../../../../kit/expressions/cel-environment.ts';
import { toCel, toJson } from '../../../../kit/expressions/cel-values.ts';

/** Variables of filters and transforms. */
export interface ExpressionScope {
  /** Headers of the delivery in lower case, without those that authenticate the sender. */
  headers: Record<string, string>;
  body: JsonValue;
  /** Name of the source. */
  source: string;
  /** Type of the event, if the provider's entry names its place; otherwise empty. */
  event: string;
}

const VARIABLES = { headers: 1, body: 0, source: 0, event: 0 } as const satisfies Record<
  keyof ExpressionScope,
  number
>;
const NAMES = Object.keys(VARIABLES) as Array<keyof ExpressionScope>;
/** About 20 ms. The event loop of the gateway is blocked for this time at most. */
const MAX_OPERATIONS = 200_000;
const MAX_COMPILED = 1000;
/** Functions whose cost cannot be limited beforehand. */
const REFUSED_FUNCTION = /\b(matches|duration)\s*\(/;

/** Compiles and evaluates the filters and transforms of destinations. @spec docs/decisions/0236 */
export class SourceExpressions {
  readonly #compiled = createBoundedCache<Program>(MAX_COMPILED);
  /** Loaded on first use, because loading the CEL library takes time at the start. */
  #compiler: Promise<(text: string) => Program> | undefined;

  /** Throws VALIDATION_ERROR with the position of the fault if the text is not a valid expression. */
  async check(field: 'filter' | 'transform', text: string): Promise<void> {
    try {
      await this.#compile(text);
    } catch (error) {
      const { message, offset } = faultOf(error);
      const described = `${message} (character ${offset + 1})`;
      throw new PlatformError(
        'VALIDATION_ERROR',
        `The ${field} is not a valid CEL expression: ${described}.`,
        {
          details: { issues: [{ path: `body.${field}`, message: described, offset }] },
        },
      );
    }
  }

  /** Returns whether the filter matches. Throws EXECUTION_ERROR with the reason if it gives no answer. */
  async matches(filter: string, scope: ExpressionScope): Promise<boolean> {
    const value = await this.#evaluate('filter', filter, scope);
    if (typeof value === 'boolean') return value;
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The filter gives ${JSON.stringify(value).slice(0, 100)}, but it must give true or false.`,
    );
  }

  /** Returns the value of a transform. Throws EXECUTION_ERROR with the reason if it has none. */
  transform(text: string, scope: ExpressionScope): Promise<JsonValue> {
    return this.#evaluate('transform', text, scope);
  }

  async #evaluate(field: string, text: string, scope: ExpressionScope): Promise<JsonValue> {
    try {
      const program = await this.#compile(text);
      const budget = new Budget(MAX_OPERATIONS, false);
      const values = Object.fromEntries(
        NAMES.map((name) => [name, toCel(scope[name], VARIABLES[name], budget)]),
      );
      const found = program.run(values, 'success', budget);
      budget.spendOn(found);
      return toJson(found);
    } catch (error) {
      const message =
        error instanceof OverBudget
          ? 'it takes too many operations for this delivery'
          : faultOf(error).message;
      throw new PlatformError('EXECUTION_ERROR', `The ${field} failed: ${message}.`, {
        details: { [field]: text },
      });
    }
  }

  async #compile(text: string): Promise<Program> {
    const known = this.#compiled.get(text);
    if (known) return known;
    this.#compiler ??= import('../../../../kit/expressions/cel-environment.ts').then(({ createCompiler }) =>
      createCompiler(NAMES),
    );
    const compile = await this.#compiler;
    const program = compile(text);
    const refused = REFUSED_FUNCTION.exec(withoutTexts(text));
    if (refused)
      throw Object.assign(new Error(`${refused[1]}() is not available here`), {
        range: { start: refused.index },
      });
    this.#compiled.set(text, program);
    return program;
  }
}

/** Replaces the content of text literals, so that positions stay the same. */
function withoutTexts(expression: string): string {
  return expression.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, (literal) => ' '.repeat(literal.length));
}

function faultOf(error: unknown): { message: string; offset: number } {
  const { summary, message, range } = error as {
    summary?: string;
    message: string;
    range?: { start: number };
  };
  const text = (summary ?? message).split('\n')[0]!.replace(/\.$/, '');
  return { message: text, offset: range?.start ?? 0 };
}
