import type { Server } from '@modelcontextprotocol/server';
import type { ContentBlock } from '../../../contracts/index.ts';
import { completions } from './completions.ts';
import { contentOf, shortenedText } from './content-results.ts';
import { runOffer } from './offer-calls.ts';
import { pageOf } from './pages.ts';
import type { McpCall } from './platform-calls.ts';
import type { OfferedPrompt } from './plugin-offers.ts';
import { PROMPTS } from './prompts.ts';
import { invalidParams, protocolError, reported } from './protocol-error.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { UNTRUSTED_KEY } from './untrusted.ts';

/** Serves the prompts of the platform, and those that plugins offer. */
export function servePrompts(server: Server, deps: ProtocolServerDeps, call: McpCall): void {
  const { access, offers, toolCalls } = deps;
  const offered = (): OfferedPrompt[] =>
    offers.prompts().filter((prompt) => access.allows(call.caller, offers.toolOf(prompt, call)));

  server.setRequestHandler('prompts/list', async ({ params }) => {
    const all = [...PROMPTS.map(({ text: _, ...prompt }) => prompt), ...offered().map(shownPrompt)];
    const { items, nextCursor } = pageOf(all, params?.cursor, ({ name }) => name);
    return { prompts: items, ...nextCursor };
  });
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const { name } = params;
    const values = params.arguments ?? {};
    const own = PROMPTS.find((prompt) => prompt.name === name);
    if (own) {
      requireArguments(name, own.arguments, values);
      const { description } = own;
      return { description, messages: [messageOf({ type: 'text', text: own.text(values) })] };
    }
    const prompt = offers.prompts().find((one) => one.name === name);
    if (!prompt) throw invalidParams(`There is no prompt "${name.slice(0, 100)}".`);
    requireArguments(name, prompt.declared.arguments, values);
    try {
      const input = Object.fromEntries(
        prompt.declared.arguments.flatMap((one) =>
          values[one.name] === undefined ? [] : [[one.name, values[one.name]]],
        ),
      );
      const tool = offers.toolOf(prompt, call);
      const answer = await runOffer(deps, tool, { input, subject: name }, call, context);
      if ('question' in answer) return answer.question;
      const { description } = shownPrompt(prompt);
      const messages = await reported(() => messagesOf(answer.value), { untrusted: true });
      return { description, messages, _meta: { [UNTRUSTED_KEY]: true } };
    } catch (thrown) {
      throw protocolError(thrown);
    }
  });
  server.setRequestHandler('completion/complete', ({ params: { ref, argument } }) =>
    reported(() =>
      toolCalls.limited(call, () => completions({ ref, argument, prompts: offered() }, deps, call)),
    ),
  );
}

function shownPrompt({ name, declared, plugin }: OfferedPrompt) {
  return {
    name,
    title: declared.title ?? declared.id,
    description: declared.description ?? `The prompt ${declared.id} of ${plugin.id}.`,
    arguments: declared.arguments.map(({ values: _, ...argument }) => argument),
  };
}

function requireArguments(
  prompt: string,
  declared: ReadonlyArray<{ name: string; required: boolean }>,
  values: Record<string, string>,
): void {
  const missing = declared.find(({ name, required }) => required && !values[name]);
  if (missing) throw invalidParams(`The prompt ${prompt} needs the argument ${missing.name}.`);
}

/** Returns a message of the user for each block, or for the text. */
function messagesOf(value: unknown) {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
  const blocks = contentOf(value) ?? [{ type: 'text' as const, text: shortenedText(text) }];
  return blocks.map(messageOf);
}

const messageOf = (content: ContentBlock) => ({ role: 'user' as const, content });
