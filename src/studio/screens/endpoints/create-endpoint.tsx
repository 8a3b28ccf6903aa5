import { call, type Input } from '../../api/call.ts';
import { IS_PORTAL } from '../../app/portal-address.ts';
import { Section } from '../../ui/section.tsx';
import type { Action } from '../../ui/use-action.ts';
import { useFocusNew } from '../../ui/use-focus-new.ts';
import { useForm } from '../../ui/use-form.ts';
import { bodyOf, EndpointFields, NEW_ENDPOINT } from './endpoint-form.tsx';

export interface CreatedEndpoint {
  id: string;
  url: string;
  secret: string;
}

interface CreateEndpointProps {
  action: Action;
  onCreated: (created: CreatedEndpoint) => void;
}

export function CreateEndpoint({ action, onCreated }: CreateEndpointProps) {
  const form = useForm(NEW_ENDPOINT, action, async (values) => {
    const body = bodyOf(values) as Input<'createEndpoint'>['body'];
    const created = await call('createEndpoint', { body });
    form.reset();
    onCreated(created);
    return `${created.url} gets messages from now on.`;
  });
  useFocusNew('endpoint', 'new-endpoint-url');
  return (
    <Section title="Create an endpoint">
      <form class="schema-form" onSubmit={form.onSubmit}>
        <EndpointFields id="new-endpoint" form={form} isNew hasApplication={!IS_PORTAL} />
        <div class="actions">
          <button type="submit" class="primary" disabled={action.isBusy}>
            Create endpoint
          </button>
        </div>
      </form>
    </Section>
  );
}
