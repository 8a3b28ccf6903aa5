import { useState } from 'preact/hooks';
import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import { call, type Reply } from '../../api/call.ts';
import { outdate } from '../../api/query.ts';
import { Command } from '../../ui/command.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Section } from '../../ui/section.tsx';
import { Time } from '../../ui/time.tsx';
import { useAction } from '../../ui/use-action.ts';
import type { Instructions } from './instructions.ts';

export type Provisioned = Reply<'provisionWebhook'>;

interface SecretStepProps {
  webhook: WebhookListItem;
  instructions: Instructions;
  instance: string;
  onInstance: (instance: string) => void;
  /** URL of the existing secret. Undefined without one. */
  storedUrl: string | undefined;
  /** When the existing secret was created. Null without one. */
  rotatedAt: number | null;
  provisioned: Provisioned | undefined;
  title: string;
  onProvisioned: (provisioned: Provisioned) => void;
}

/** Creates, takes or rotates the secret of a webhook. */
export function SecretStep(props: SecretStepProps) {
  const { webhook, instance, onInstance, storedUrl, rotatedAt, provisioned, title, onProvisioned } = props;
  const { sender, makesSecret, setsHeaders } = props.instructions;
  const [given, setGiven] = useState('');
  const [hasSecret, setHasSecret] = useState(false);
  const isGiven = makesSecret || hasSecret;
  // Undefined until a person changes it. Then a rotation keeps the stored value, on which the senders depend.
  const [chosenInUrl, setInUrl] = useState<boolean>();
  const isInUrl = chosenInUrl ?? storedUrl?.includes('?namespace=') ?? !setsHeaders;
  const action = useAction();
  const isIncomplete = (isGiven && given.trim() === '') || (webhook.multi && instance === '');
  const provision = async (): Promise<string> => {
    const { pluginId, event } = webhook;
    const body = {
      ...{ pluginId, event },
      ...(storedUrl === undefined || chosenInUrl !== undefined ? { namespaceInUrl: isInUrl } : {}),
      ...(webhook.multi ? { instanceId: instance as never } : {}),
      ...(isGiven ? { secret: given.trim() } : {}),
    };
    onProvisioned(await call('provisionWebhook', { body }));
    setGiven('');
    setInUrl(undefined);
    setHasSecret(false);
    outdate('listWebhooks');
    return '';
  };
  return (
    <Section key="secret" title={title}>
      {rotatedAt !== null && !provisioned && (
        <p>
          It has a secret since <Time ms={rotatedAt} />. A new one replaces it; the old one works for 24 more
          hours.
        </p>
      )}
      <div class="decide">
        {webhook.multi && (
          <label>
            Instance{' '}
            <input
              value={instance}
              readOnly={action.isBusy}
              onInput={({ currentTarget }) => {
                onInstance(currentTarget.value);
                setInUrl(undefined);
              }}
            />
          </label>
        )}
        {!makesSecret && (
          <label>
            <input
              type="checkbox"
              checked={hasSecret}
              onChange={({ currentTarget }) => setHasSecret(currentTarget.checked)}
            />{' '}
            The sender has a secret already
          </label>
        )}
        {isGiven && (
          <label>
            Secret of {sender}{' '}
            <input
              type="password"
              autoComplete="off"
              value={given}
              onInput={({ currentTarget }) => setGiven(currentTarget.value)}
            />
          </label>
        )}
        <label>
          <input
            type="checkbox"
            checked={isInUrl}
            onChange={({ currentTarget }) => setInUrl(currentTarget.checked)}
          />{' '}
          Put the namespace into the URL, because the sender cannot set the header x-svc-namespace
        </label>
        <button
          type="button"
          class="primary"
          disabled={isIncomplete || action.isBusy}
          onClick={() => action.run(provision)}
        >
          {isGiven ? 'Save the secret' : rotatedAt === null ? 'Create the secret' : 'Rotate the secret'}
        </button>
      </div>
      <Notice action={action} />
      {provisioned && <Shown provisioned={provisioned} />}
    </Section>
  );
}

function Shown({ provisioned: { secret, rotated } }: { provisioned: Provisioned }) {
  return (
    <>
      {secret === '' ? (
        <p>The secret is saved.</p>
      ) : (
        <p>
          Copy the secret now. It is not shown again: <Command text={secret} />
        </p>
      )}
      {rotated && <p>The old secret works for 24 more hours.</p>}
    </>
  );
}
