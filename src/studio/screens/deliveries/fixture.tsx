import { fixtureFileName, fixtureOf } from '../../../contracts/fixture-of-delivery.ts';
import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { Command } from '../../ui/command.tsx';
import { Section } from '../../ui/section.tsx';
import { shellWord } from '../../ui/shell-word.ts';

/** Saves a delivery as a file that tests of the plugin replay. */
export function Fixture({ delivery }: { delivery: WebhookDeliveryDetails }) {
  const fixture = fixtureOf(delivery);
  if (!fixture) return null;
  const file = fixtureFileName(delivery);
  const save = (): void => {
    const url = URL.createObjectURL(
      new Blob([`${JSON.stringify(fixture, null, 2)}\n`], { type: 'application/json' }),
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
      <p>The file has the body and the headers of the event, without secrets. In a terminal:</p>
      <Command text={`svc webhooks fixture ${delivery.webhookId}`} />
      <p>Send it again, signed with the current secret:</p>
      <Command text={sendCommand(delivery, file)} />
      <p>In a test of the plugin:</p>
      <Command text={`await host.replay(${JSON.stringify(file)})`} />
    </Section>
  );
}

function sendCommand({ pluginId, event, instanceId }: WebhookDeliveryDetails, file: string): string {
  const instance = instanceId ? [`--instance ${shellWord(instanceId)}`] : [];
  return ['svc webhooks send', pluginId, event, ...instance, `--fixture ${file}`].join(' ');
}
