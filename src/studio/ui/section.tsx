import type { ComponentChildren } from 'preact';

interface SectionProps {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** Part of a screen with a heading. */
export function Section({ title, actions, children }: SectionProps) {
  return (
    <section class="section">
      <div class="heading">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  );
}
