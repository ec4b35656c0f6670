// JupyterLab's command mode takes arrow keys and letters even while a control of ours has the focus: "x" would
// cut the cell. It looks for this mark on the element that has the focus, before it looks for its shortcuts.
function render({ el }) {
  let tries = 600;
  const guard = () => {
    const panel = el.closest(".cnb-widget");
    if (panel) panel.addEventListener("focusin", (event) => (event.target.dataset.lmSuppressShortcuts = "true"));
    else if (tries-- > 0) requestAnimationFrame(guard);
  };
  guard();
}
export default { render };
