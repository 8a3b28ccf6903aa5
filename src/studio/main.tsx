import { render } from 'preact';
import { App } from './app/app.tsx';
import { keepNamespaceInLinks } from './app/namespace-links.ts';
import { applyTheme } from './app/theme.ts';
import './styles/base.css';

applyTheme();
keepNamespaceInLinks();
render(<App />, document.getElementById('app')!);
