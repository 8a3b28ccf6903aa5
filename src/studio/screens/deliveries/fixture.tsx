import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { Command } from '../../ui/command.tsx';
import { parsedJson } from '../../ui/json.tsx';
import { Section } from '../../ui/section.tsx';
import { shellWord } from '../../ui/shell-word.ts';

/** Headers that belong to one connection or one signature, and not to the event. */
const OF_REQUEST =
  /^(?:host|content-.*|connection|accept.*|transfer-encoding|user-agent|x-forwarded-.*|forwarded|via|traceparent|tracestate|cookie|authorization|origin|referer|sec-.*|x-svc-.*|x-request-id|x-trace-id|.*(?:signature|token|secret|api-key|timestamp|hmac).*)$/;

/** Saves the payload of a delivery as a JSON file, and shows how to send it again. */
export function Fixture({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const { body, bodyEncoding } = delivery;
  const payload = body !== null && bodyEncoding === 'utf8' ? parsedJson(body) : undefined;
  if (payload === undefined) return null;
  const file = fileName(delivery);
  const save = (): void => {
    const url = URL.createObjectURL(
      new Blob([`${JSON.stringify(payload, null, 2)}\n`], { type: 'application/json' }),
    );
    const link = document.createElement('a');
    link.href = url;
    link.download = file;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <Section
      title="Test fixture"
      actions={
        <button type="button" onClick={save}>
          Save as {file}
        </button>
      }
    >
      <p>The file has the payload. Send it again, signed with the current secret:</p>
      <Command text={commandFor(delivery, file)} />
      <p>In a test of the plugin:</p>
      <Command text={testFor(delivery, file)} />
    </Section>
  );
}

function fileName({ pluginId, event, webhookId }: WebhookDeliveryDetails): string {
  const name = `${pluginId}-${event}-${webhookId.slice(-6)}`;
  return `${name.replace(/[^A-Za-z0-9._-]+/g, '-').replace(/^-/, '')}.json`;
}

function commandFor(delivery: WebhookDeliveryDetails, file: string): string {
  const { pluginId, event, instanceId } = delivery;
  const instance = instanceId ? [`--instance ${shellWord(instanceId)}`] : [];
  const headers = headersOf(delivery).map(([name, value]) => `--header ${shellWord(`${name}: ${value}`)}`);
  return ['svc webhooks send', pluginId, event, ...instance, `--data @${file}`, ...headers].join(' ');
}

function testFor(delivery: WebhookDeliveryDetails, file: string): string {
  const headers = headersOf(delivery);
  const { event, instanceId } = delivery;
  const options = {
    ...(instanceId ? { instanceId } : {}),
    ...(headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}),
  };
  const given = Object.keys(options).length > 0 ? `, ${JSON.stringify(options)}` : '';
  return `await host.deliver(${JSON.stringify(event)}, JSON.parse(await readFile(${JSON.stringify(file)}, 'utf8'))${given})`;
}

function headersOf({ headers }: WebhookDeliveryDetails): ReadonlyArray<readonly [string, string]> {
  return headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => !OF_REQUEST.test(name));
}
