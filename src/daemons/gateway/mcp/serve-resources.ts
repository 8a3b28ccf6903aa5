import type { Server } from '@modelcontextprotocol/server';
import type { ContentBlock } from '../../../contracts/index.ts';
import { contentOf, shortenedText } from './content-results.ts';
import { runOffer } from './offer-calls.ts';
import { pageOf } from './pages.ts';
import type { McpCall } from './platform-calls.ts';
import { isTemplate, type OfferedResource } from './plugin-offers.ts';
import { protocolError, reported } from './protocol-error.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';
import { findResource, listDocs, RESOURCE_TEMPLATES } from './resources.ts';
import { UNTRUSTED_KEY } from './untrusted.ts';

/** Serves the resources of the platform, and those that plugins offer. */
export function serveResources(server: Server, deps: ProtocolServerDeps, call: McpCall): void {
  const { catalog, access, platform, offers, toolCalls } = deps;
  const offered = (): OfferedResource[] =>
    offers.resources().filter((resource) => access.allows(call.caller, offers.toolOf(resource, call)));

  server.setRequestHandler('resources/list', async ({ params }) => {
    const own = offered().filter(({ declared }) => !isTemplate(declared.uri));
    const all = [...(await listDocs()), ...own.map(shownResource)];
    const { items, nextCursor } = pageOf(all, params?.cursor, ({ uri }) => uri);
    return { resources: items, ...nextCursor };
  });
  server.setRequestHandler('resources/templates/list', async ({ params }) => {
    const own = offered()
      .map(shownResource)
      .filter(({ uri }) => isTemplate(uri))
      .map(({ uri, ...rest }) => ({ ...rest, uriTemplate: uri }));
    const all = [...RESOURCE_TEMPLATES, ...own];
    const { items, nextCursor } = pageOf(all, params?.cursor, ({ uriTemplate }) => uriTemplate);
    return { resourceTemplates: items, ...nextCursor };
  });
  server.setRequestHandler('resources/read', async ({ params: { uri } }, context) => {
    try {
      const found = offers.find(uri);
      if (found) {
        const { resource, parameters } = found;
        const input = { ...parameters, uri };
        const tool = offers.toolOf(resource, call);
        const answer = await runOffer(deps, tool, { input, subject: uri }, call, context);
        if ('question' in answer) return answer.question;
        const { mimeType } = resource.declared;
        const contents = await reported(() => contentsOf(answer.value, { uri, mimeType }), {
          untrusted: true,
        });
        return { contents };
      }
      const { kind, id } = findResource(uri);
      const untrusted = kind.tool !== null;
      const text = await toolCalls.limited(call, async () => {
        if (kind.tool !== null) access.require(call, (await catalog.find(call, kind.tool))!);
        const read = () => kind.read(id, (endpoint, input) => platform.call(endpoint, input, call));
        return shortenedText(await reported(read, { untrusted }));
      });
      const _meta = { [UNTRUSTED_KEY]: untrusted };
      return { contents: [{ uri, mimeType: kind.mimeType, text, _meta }] };
    } catch (thrown) {
      throw protocolError(thrown);
    }
  });
}

function shownResource({ declared: { uri, name, title, description, mimeType } }: OfferedResource) {
  return {
    ...{ uri, name },
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
  };
}

/** Returns the contents of a resource from the result of its command. */
function contentsOf(value: unknown, { uri, mimeType }: { uri: string; mimeType: string | undefined }) {
  const _meta = { [UNTRUSTED_KEY]: true };
  const declared = mimeType === undefined ? {} : { mimeType };
  const blocks = contentOf(value);
  if (blocks) return blocks.map((block) => ({ ...declared, ...resourceOf(block), uri, _meta }));
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null);
  return [{ ...declared, uri, text: shortenedText(text), _meta }];
}

function resourceOf(
  block: ContentBlock,
): { mimeType?: string; text: string } | { mimeType?: string; blob: string } {
  switch (block.type) {
    case 'text':
      return { text: block.text };
    case 'image':
    case 'audio':
      return { mimeType: block.mimeType, blob: block.data };
    case 'resource': {
      const { uri: _, mimeType, ...body } = block.resource;
      return mimeType === undefined ? body : { ...body, mimeType };
    }
    case 'resource_link':
      return { text: block.uri };
  }
}
